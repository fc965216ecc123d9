const { readFileSync } = require('node:fs')
const { createServer } = require('node:http')

createServer((_, response) => {
  response.end(`library catalogue, hooks: ${readFileSync('.hooks', 'utf8')}`)
}).listen(process.env.PORT, process.env.HOST)
