"""The pages of the workbench, a thin layer over a service: one file each; `frame` surrounds them all."""
