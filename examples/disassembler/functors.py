"""The instruction set of the example: what opcodes do."""

KINDS = {"jmp": "jump", "jz": "branch", "call": "call", "switch": "switch", "ret": "return", "hlt": "halt"}


def kind_of(opcode: str) -> str:
    return KINDS.get(opcode, "next")


def target_of(address: int, size: int, operand: int) -> int:
    return address + size + operand


def pushes(opcode: str, operand: int) -> int:
    return {"push": 4, "pop": -4, "enter": operand, "leave": -operand}.get(opcode, 0)
