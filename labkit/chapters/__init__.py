"""One fixed entry for each chapter: `python -m labkit.chapters.ch05 --prompt "..."`."""
