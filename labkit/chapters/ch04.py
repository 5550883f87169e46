"""Chapter 4 by itself: `python -m labkit.chapters.ch04 --prompt "..."`."""

from labkit.cli import chapter_entry

main = chapter_entry(4)

if __name__ == "__main__":
    raise SystemExit(main())
