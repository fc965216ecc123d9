fetch('api/time.php').then((response) => response.text()).then(alert)
