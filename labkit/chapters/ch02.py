"""Chapter 2 by itself: `python -m labkit.chapters.ch02 --prompt "..."`."""

from labkit.cli import chapter_entry

main = chapter_entry(2)

if __name__ == "__main__":
    raise SystemExit(main())
