"""Chapter 3 by itself: `python -m labkit.chapters.ch03 --prompt "..."`."""

from labkit.cli import chapter_entry

main = chapter_entry(3)

if __name__ == "__main__":
    raise SystemExit(main())
