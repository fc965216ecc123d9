const isOdd = require('is-odd')
require('node:http')
  .createServer((_, response) => response.end(`odd: ${isOdd(3)}`))
  .listen(process.env.PORT)
