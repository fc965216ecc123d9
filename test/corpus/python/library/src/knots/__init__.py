def tie(rope):
    return rope + rope
