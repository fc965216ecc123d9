def main():
    print("tied")
