"""How many guarded requests a second the service answers while its policy changes: `python load.py [SECONDS]`.

Requests go to the application itself, without a network. What a guard takes of a request is measured beside it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import httpx
from service import FACTS, Policy, create


async def load(seconds: float, readers: int = 8) -> dict[str, float]:
    """Reads by several users, one in three of which is refused, while groups change."""
    transport = httpx.ASGITransport(app=create())
    answered: list[float] = []
    refused = changes = 0
    async with httpx.AsyncClient(transport=transport, base_url="http://guard") as client:
        end = time.perf_counter() + seconds

        async def read(number: int) -> None:
            nonlocal refused
            user = ("ann", "bob", "eve")[number % 3]
            while (began := time.perf_counter()) < end:
                answer = await client.get("/documents/plan", headers={"X-User": user})
                answered.append(time.perf_counter() - began)
                refused += answer.status_code == 403

        async def change() -> None:
            nonlocal changes
            while time.perf_counter() < end:
                rows = {"delegate": [["ann", f"guest {changes % 10}", "plan"]]}
                side = "insert" if changes // 10 % 2 == 0 else "delete"
                await client.post("/policy", json={side: rows}, headers={"X-User": "root"})
                changes += 1
                await asyncio.sleep(0.01)

        await asyncio.gather(change(), *(read(number) for number in range(readers)))
    answered.sort()
    return {
        "requests a second": len(answered) / seconds,
        "refused": float(refused),
        "changes": float(changes),
        "median ms": answered[len(answered) // 2] * 1e3,
        "p99 ms": answered[len(answered) * 99 // 100] * 1e3,
        "a decision, µs": decision() * 1e6,
    }


def decision() -> float:
    """Seconds of one decision, in the best of many rounds."""
    policy: Any = Policy(FACTS)
    rounds = []
    for _ in range(50):
        began = time.perf_counter()
        for _ in range(100):
            policy.may("ann", "read", "plan")
        rounds.append((time.perf_counter() - began) / 100)
    return min(rounds)


if __name__ == "__main__":
    for name, value in asyncio.run(load(float(sys.argv[1]) if len(sys.argv) > 1 else 5)).items():
        print(f"{name:20}{value:12.2f}")
