"""How the kernel's operators are compiled: their signatures, arrays and records by address, and warming.

The lowest room. `signatures` has the types that operators take, how rows are hashed, arrays that lie at an address and
tables whose fields have names; `warm` compiles everything beforehand. It knows `elastalog.jit` and nothing of
relations.
"""
