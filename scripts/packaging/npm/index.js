// The path of the executable of berth, for programs that start it themselves.
const { accessSync } = require('node:fs')
const { dirname, join } = require('node:path')

const musl =
  process.platform === 'linux' && process.report.getReport().header.glibcVersionRuntime === undefined
const name = `{{scope}}/berth-${process.platform}-${process.arch}${musl ? '-musl' : ''}`
let path
try {
  path = join(dirname(require.resolve(`${name}/package.json`)), 'bin/berth')
  accessSync(path)
} catch {
  throw new Error(
    `The package ${name} with the executable for this system is missing. Add it with: npm install --no-save ${name}@{{version}}`,
  )
}
module.exports = { path }
