"""Chapter 5 by itself: `python -m labkit.chapters.ch05 --prompt "..."`."""

from labkit.cli import chapter_entry

main = chapter_entry(5)

if __name__ == "__main__":
    raise SystemExit(main())
