"""What can be said of a text by counting."""

import re
from collections import Counter

WORDS_PER_MINUTE = 230

# Letters and digits, with apostrophes and hyphens inside.
WORD = re.compile(r"\w+(?:['’-]\w+)*")
SENTENCE = re.compile(r"[^.!?…]*\w[^.!?…]*(?:[.!?…]+|$)")


def analyze(text):
    """Counts of a text, its most frequent words, and how long it takes to read, in seconds."""
    words = WORD.findall(text)
    sentences = SENTENCE.findall(text)
    frequent = Counter(word.lower() for word in words if len(word) > 3)
    return {
        "characters": len(text),
        "words": len(words),
        "sentences": len(sentences),
        "paragraphs": len([block for block in re.split(r"\n\s*\n", text) if block.strip()]),
        "reading_seconds": round(len(words) * 60 / WORDS_PER_MINUTE),
        "words_per_sentence": round(len(words) / len(sentences), 1) if sentences else 0,
        "frequent": [{"word": word, "count": count} for word, count in frequent.most_common(8)],
    }
