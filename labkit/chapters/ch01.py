"""Chapter 1 by itself: `python -m labkit.chapters.ch01 --prompt "..."`."""

from labkit.cli import chapter_entry

main = chapter_entry(1)

if __name__ == "__main__":
    raise SystemExit(main())
