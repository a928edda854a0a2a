"""The pages of the workbench: thin, over a service. One file a page; `frame` is what stands around them."""
