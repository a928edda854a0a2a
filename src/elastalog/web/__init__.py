"""A session as a service: many readers, one writer, and an interface over HTTP, which needs the extra `web`."""
