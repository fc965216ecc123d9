require('node:http')
  .createServer((_, response) => response.end(require('greeting')))
  .listen(process.env.PORT)
