from app import create_app

application = create_app("guests")
