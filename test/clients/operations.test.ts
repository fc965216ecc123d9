import { expect, test } from 'bun:test'
import OPERATIONS from '../../src/clients/operations.json'
import { API_OPERATIONS, CONTROL_OPERATIONS } from '../../src/contract/operations.ts'
import { ERROR_STATUS } from '../../src/errors.ts'

const ids = [...Object.keys(API_OPERATIONS), ...Object.keys(CONTROL_OPERATIONS)]
const methods = Object.keys(OPERATIONS.methods)

/** Whether an entry of `lowLevel` covers an operation: by its id, or as `noun.*`. */
const covers = (entry: string, id: string): boolean =>
  entry.endsWith('.*') ? id.startsWith(entry.slice(0, -1)) : entry === id

test('every operation has a method of the clients or is said to be called through the low level', () => {
  const uncovered = ids.filter(
    (id) => !methods.includes(id) && !OPERATIONS.lowLevel.some((entry) => covers(entry, id)),
  )
  expect(uncovered).toEqual([])
})

test('no operation is in both lists, and every entry names an operation', () => {
  expect(methods.filter((id) => OPERATIONS.lowLevel.some((entry) => covers(entry, id)))).toEqual([])
  expect([...methods, ...OPERATIONS.sockets].filter((id) => !ids.includes(id))).toEqual([])
  expect(OPERATIONS.lowLevel.filter((entry) => !ids.some((id) => covers(entry, id)))).toEqual([])
})

test('every method has one operation', () => {
  const names = Object.values(OPERATIONS.methods).flat()
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})

test('every error code has its class', () => {
  expect(Object.keys(OPERATIONS.errors).sort()).toEqual(Object.keys(ERROR_STATUS).sort())
})
