from flask import Flask


def create_app(name):
    app = Flask(name)
    app.add_url_rule("/", view_func=lambda: f"made for {name}")
    return app
