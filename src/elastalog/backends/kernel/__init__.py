"""The in-process backend: relations in memory, rules evaluated by compiled operators. One room a folder, from the
store of facts up to whole updates; `backend` hands the protocol on to them."""
