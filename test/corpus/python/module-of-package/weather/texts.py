TEXT = b"sunny"
