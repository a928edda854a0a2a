"""Durable epochs: a store is a folder that survives crashes at any instant."""
