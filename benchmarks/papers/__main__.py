"""`python -m benchmarks.papers`: measures tables and figures, keeps them as JSON, writes the pages."""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

from benchmarks.papers import debugging, dredc, elastic, marking, provenance  # noqa: F401  they register their items
from benchmarks.papers.items import ITEMS, PAPERS, Item, Settings
from benchmarks.papers.record import RESULTS, keep, take
from benchmarks.papers.report import PAGES, write_pages
from benchmarks.workloads import DATA_VARIABLE, data_folder


def main() -> None:
    parser = argparse.ArgumentParser(description="the tables and figures of the papers, measured here")
    parser.add_argument("--quick", action="store_true", help="reduced sizes: a quarter of an hour at most")
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="NAME", help="as elastic.table3, or a paper, as elastic"
    )
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--pages-only", action="store_true", help="measure nothing, write the pages from what there is")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the JSON files")
    parser.add_argument("--pages", type=Path, default=PAGES, help="folder of the pages")
    given = parser.parse_args()
    settings = Settings(given.quick, data_folder(given.data))
    unknown = [name for name in given.only if not _chosen([name])]
    if unknown:
        parser.error(f"no item {', '.join(unknown)}; there are: {', '.join(ITEMS)}")
    items = [] if given.pages_only else _chosen(given.only)
    failed = [item.name for item in items if not _measured(item, settings, given.results)]
    write_pages(given.results, given.pages)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _chosen(names: list[str]) -> list[Item]:
    """In the order of the papers."""
    items = [item for paper in PAPERS for item in ITEMS.values() if item.paper == paper]
    return [item for item in items if not names or item.name in names or item.paper in names]


def _measured(item: Item, settings: Settings, results: Path) -> bool:
    """Whether it went well. What goes wrong in one item must not cost the hours of the others."""
    if item.measure is None:
        print(f"{item.name}: left out; {item.why}", file=sys.stderr)
    elif not item.is_available(settings.data):
        print(f"{item.name}: no data ({', '.join(item.folders)})", file=sys.stderr)
    else:
        print(f"{item.name}: {item.title}", flush=True)
        try:
            record = take(item, settings)
        except Exception:
            traceback.print_exc()
            return False
        print(f"  {record.seconds:.1f} s: {keep(record, results)}", flush=True)
    return True


if __name__ == "__main__":
    main()
