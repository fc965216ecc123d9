// Loaded by npm before itself. `npm init` calls `require` of a module that it makes, which Bun as `node` gives to none.
const Module = require('node:module')

Object.getPrototypeOf(new Module('')).require ??= function (id) {
  return Module.createRequire(this.filename)(id)
}
