import { expect, test } from 'bun:test'
import { addressKind } from '../../src/runtime/address.ts'

const own = () => ['127.0.0.1', '93.184.215.14', '2606:2800:21f:cb07::1', 'fe80::1%eth0']

test.each([
  ['93.184.215.14', 'loopback'],
  ['::ffff:93.184.215.14', 'loopback'],
  ['2606:2800:021f:cb07:0:0:0:1', 'loopback'],
  ['93.184.215.15', 'public'],
  ['2606:2800:21f:cb07::2', 'public'],
  ['10.0.0.1', 'private'],
])('takes %s for %s where the machine has some public addresses itself', (address, kind) => {
  expect(addressKind(address, own)).toBe(kind)
})
