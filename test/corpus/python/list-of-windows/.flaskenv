FLASK_APP=kiosk
