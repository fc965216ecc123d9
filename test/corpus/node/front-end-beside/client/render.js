console.log('<h1>Weather</h1>')
