import { describe, expect, test } from 'bun:test'
import { OutboundPolicy } from '../../../src/compute/local/network/outbound/policy.ts'
import type { OutboundSettings } from '../../../src/compute/sandbox.ts'
import { parseHostPattern } from '../../../src/runtime/host-pattern.ts'

const OWN = ['203.0.112.9', '2a00:1450::9']
const policy = (mode: OutboundSettings['mode'], ...hosts: string[]) =>
  new OutboundPolicy({ mode, hosts }, 'srv_1', () => OWN)
const reached = (judge: OutboundPolicy, address: string, port = 443, ...names: string[]): boolean =>
  judge.judge({ address, port, names }) === null

/** Addresses of the machine, of private and special networks, in every notation, and forms of them inside IPv6. */
const INNER = [
  ...[
    '10.0.0.5',
    '172.16.0.1',
    '172.31.255.254',
    '192.168.1.1',
    '169.254.169.254',
    '169.254.0.1',
    '100.64.0.1',
  ],
  ...['198.18.0.1', '192.0.2.1', '198.51.100.1', '203.0.113.1', '240.0.0.1', '168.63.129.16', '192.88.99.1'],
  ...['fd00::1', 'fc00::1', 'fe80::1', 'fec0::1', 'fd00:ec2::254', '2001:db8::1', '100::1', '2001::1'],
  ...[
    '64:ff9b::a00:5',
    '64:ff9b::7f00:1',
    '64:ff9b:1::a00:5',
    '2002:a00:5::1',
    '2002:7f00:1::',
    '::ffff:10.0.0.5',
  ],
  ...[
    '::ffff:a9fe:a9fe',
    '::10.0.0.5',
    '2001:4860::5efe:10.0.0.5',
    '203.0.112.9',
    '::ffff:203.0.112.9',
    '2a00:1450::9',
  ],
]

/** Addresses that are never a place outside. */
const NOWHERE = [
  '127.0.0.1',
  '127.8.8.8',
  '0.0.0.0',
  '::1',
  '::',
  '::ffff:127.0.0.1',
  '224.0.0.1',
  'ff02::1',
  '255.255.255.255',
]

describe('outbound policy', () => {
  test('public reaches the internet, and nothing of the machine or of private and special networks', () => {
    const judge = policy('public')
    expect(
      ['93.184.216.34', '1.1.1.1', '2606:4700::1111', '::ffff:1.1.1.1'].filter((to) => !reached(judge, to)),
    ).toEqual([])
    expect([...INNER, ...NOWHERE, 'localhost', '', '1.2.3'].filter((to) => reached(judge, to))).toEqual([])
  })

  test('open reaches whatever the machine reaches, but not the machine itself, and none reaches nothing', () => {
    expect(
      ['10.0.0.5', '169.254.169.254', '203.0.113.9', 'fd00::1'].filter((to) => !reached(policy('open'), to)),
    ).toEqual([])
    expect([...OWN].filter((to) => reached(policy('open'), to))).toEqual([])
    expect(reached(policy('open', '203.0.112.9:80'), '203.0.112.9', 80)).toBe(true)
    expect(NOWHERE.filter((to) => reached(policy('open'), to))).toEqual([])
    expect(
      ['1.1.1.1', '10.0.0.5'].filter((to) => reached(policy('none', '10.0.0.5', '1.1.1.1'), to)),
    ).toEqual([])
  })

  test('a listed name reaches its public addresses only, at its port, whatever it resolves to', () => {
    const judge = policy('list', 'example.com:443', '*.example.org', 'db.example.net:5432')
    expect(reached(judge, '93.184.216.34', 443, 'example.com')).toBe(true)
    expect(reached(judge, '93.184.216.34', 80, 'example.com')).toBe(false)
    expect(reached(judge, '93.184.216.34', 443)).toBe(false)
    expect(reached(judge, '93.184.216.34', 443, 'www.example.com')).toBe(false)
    expect(reached(judge, '93.184.216.34', 443, 'notexample.org')).toBe(false)
    expect(reached(judge, '93.184.216.34', 8080, 'a.b.example.org')).toBe(true)
    // A name that is moved to an inner address is refused when that is dialled.
    for (const address of [...INNER, ...NOWHERE]) {
      expect(reached(judge, address, 443, 'example.com'), address).toBe(false)
    }
  })

  test('a listed address or range is reached even if it is private, at its port', () => {
    for (const mode of ['list', 'public'] as const) {
      const judge = policy(mode, '10.0.0.5:5432', '192.168.0.0/16', '[fd00::1]:80', 'fd01::/16')
      expect(reached(judge, '10.0.0.5', 5432)).toBe(true)
      expect(reached(judge, '::ffff:10.0.0.5', 5432)).toBe(true)
      expect(reached(judge, '10.0.0.5', 5433)).toBe(false)
      expect(reached(judge, '10.0.0.6', 5432)).toBe(false)
      expect(reached(judge, '192.168.77.1', 1)).toBe(true)
      expect(reached(judge, 'fd00::1', 80)).toBe(true)
      expect(reached(judge, 'fd00::1', 81)).toBe(false)
      expect(reached(judge, 'fd01::7', 81)).toBe(true)
      expect(reached(judge, '127.0.0.1', 5432)).toBe(false)
    }
    expect(reached(policy('list', '127.0.0.0/8', '::1', '0.0.0.0'), '127.0.0.1')).toBe(false)
  })

  test('only names that may be reached are resolved', () => {
    expect(policy('public').judgeName('example.com')).toBe(null)
    expect(policy('none').judgeName('example.com')?.remedy).toContain('--outbound public')
    const judge = policy('list', 'example.com:443', '*.example.org')
    expect(['example.com', 'a.example.org'].every((name) => judge.judgeName(name) === null)).toBe(true)
    expect(
      ['example.org', 'evil.test', 'example.com.evil.test'].some((name) => judge.judgeName(name) === null),
    ).toBe(false)
  })

  test('a refusal names the remedy that allows the destination', () => {
    const refusal = policy('public').judge({ address: '10.0.0.5', port: 5432, names: ['db.test'] })
    expect(refusal?.reason).toContain('private')
    expect(refusal?.remedy).toContain('berth servers network srv_1 --add-host 10.0.0.5:5432')
    expect(reached(policy('public', '10.0.0.5:5432'), '10.0.0.5', 5432)).toBe(true)
    const listed = policy('list').judge({ address: '2606:4700::1111', port: 443, names: ['one.test'] })
    expect(listed?.remedy).toContain('--add-host one.test:443')
    const own = policy('public').judge({ address: '203.0.112.9', port: 5432, names: [] })
    expect(own?.remedy).toContain('--server-hosts')
  })

  test('only the loopback of the machine has the remedy to hand in a service', () => {
    const remedyOf = (address: string) =>
      policy('open').judge({ address, port: 5353, names: ['x.test'] })?.remedy
    expect(remedyOf('127.8.8.8')).toContain('--server-hosts')
    expect(remedyOf('::1')).toContain('--server-hosts')
    for (const nowhere of ['224.0.0.251', 'ff02::fb', '255.255.255.255', '0.0.0.0', '::', '1.2.3']) {
      expect(remedyOf(nowhere), nowhere).toContain('the address of one machine')
    }
  })
})

test('a host pattern has one meaning, and an invalid one is refused', () => {
  const all = [
    'example.com',
    'EXAMPLE.com.:443',
    '*.example.com:443',
    '10.0.0.5',
    '10.0.0.0/8:443',
    'fd00::1',
    '[fd00::/8]:1',
    '_srv.x',
  ]
  expect(all.filter((text) => parseHostPattern(text) === null)).toEqual([])
  expect(parseHostPattern('EXAMPLE.com.:443')).toMatchObject({ port: 443, host: { name: 'example.com' } })
  const none = [
    '',
    '*',
    '*.',
    'a.*.com',
    'http://x',
    'x:0',
    'x:65536',
    'x:',
    '10.0.0.0/33',
    '10.0.0',
    '0x7f000001',
    '2130706433',
    'a b',
    '[x]:1',
    'a..b',
    '[fd00::1',
    'x/8',
    '-x',
  ]
  expect(none.filter((text) => parseHostPattern(text) !== null)).toEqual([])
})

test('a refusal suggests no command for a name that no host can have', () => {
  const list = policy('list')
  expect(list.judgeName('example.com')?.remedy).toContain('--add-host example.com"')
  for (const name of ['$(id).com', 'a;id;b.com', '`id`.com', 'a"b.com', 'a\nb.com']) {
    expect(list.judgeName(name)?.remedy).not.toContain(name)
    const dialled = list.judge({ address: '93.184.216.34', port: 80, names: [name] })
    expect(dialled?.remedy).not.toContain(name)
  }
})
