import { describe, expect, test } from 'bun:test'
import {
  checkDestination,
  DestinationError,
  type Resolve,
} from '../../../src/resources/webhooks/destination.ts'

/** A name server of the test's own. */
const NAMES: Record<string, string[]> = {
  'public.example': ['93.184.215.14', '2606:4700::1111'],
  'private.example': ['10.0.0.1'],
  'mixed.example': ['93.184.215.14', '192.168.1.1'],
  'mixed6.example': ['93.184.215.14', 'fd00::1'],
  'loopback.example': ['127.0.0.1'],
  'mapped.example': ['::ffff:169.254.169.254'],
  'strange.example': ['not an address'],
  'xn--bcher-kva.example': ['93.184.215.14'],
}
const resolve: Resolve = async (name) => NAMES[name] ?? Promise.reject(new Error('ENOTFOUND'))
const check = (url: string, allowLocal = false) =>
  checkDestination(url, { allowLocal, resolve, ownAddresses: () => [] })

/** Hosts that lead to this machine or its network, or nowhere, in every notation. */
const REFUSED_HOSTS = [
  // Loopback as numbers of any kind, which the URL parser reads as addresses.
  '127.0.0.1',
  '127.0.0.1.',
  '127.1',
  '127.0.1',
  '127.1.',
  '127.255.255.254',
  '2130706433',
  '017700000001',
  '0177.0.0.1',
  '0x7f000001',
  '0x7f.1',
  '0x7F.0x0.0x0.0x1',
  '%31%32%37.0.0.1',
  '①②⑦.0.0.1',
  '127。0。0。1',
  '0',
  '0.0.0.0',
  // Names of this machine and of private networks.
  'localhost',
  'LOCALHOST',
  'localhost.',
  'loc%61lhost',
  'ｌocalhost',
  'app.localhost',
  'app.localhost.',
  'printer.local',
  'metadata.google.internal',
  'metadata.google.internal.',
  'router.lan',
  'nas.home.arpa',
  'localhost.localdomain',
  // Ranges of IPv4 (RFC 6890 and the registry behind it).
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.0.1',
  '169.254.169.254',
  '169.254.1.1',
  '100.64.0.1',
  '100.127.255.255',
  '192.0.0.1',
  '192.0.2.1',
  '198.51.100.1',
  '203.0.113.1',
  '192.88.99.1',
  '198.18.0.1',
  '198.19.255.255',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '168.63.129.16',
  // IPv6 (RFC 6890), and IPv4 inside it.
  '[::]',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::ffff:10.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  '[::127.0.0.1]',
  '[::7f00:1]',
  '[64:ff9b::7f00:1]',
  '[64:ff9b::10.0.0.1]',
  '[64:ff9b:1::1]',
  '[2002:7f00:1::]',
  '[2002:a00:1::1]',
  '[2001:4860:4860::5efe:7f00:1]',
  '[2001:4860:4860:0:200:5efe:10.0.0.1]',
  '[2001:0:7f00:1::]',
  '[2001:0:4136:e378:8000:63bf:80ff:fffe]',
  '[fe80::1]',
  '[febf::1]',
  '[fec0::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[ff02::1]',
  '[2001:db8::1]',
  '[3fff::1]',
  '[100::1]',
  '[100:0:0:1::1]',
  '[2001:2::1]',
  '[2001:10::1]',
  '[5f00::1]',
  '[4000::1]',
  '[2::1]',
  // No hosts at all.
  '256.1.1.1',
  '08.8.8.8',
  '1.2.3.4.5',
  '[fe80::1%25eth0]',
  'a..example',
  '',
]

describe('the destination guard', () => {
  test.each(REFUSED_HOSTS)('refuses https://%s/', async (host) => {
    await expect(check(`https://${host}/`)).rejects.toThrow(DestinationError)
    await expect(check(`https://${host}:8443/x`)).rejects.toThrow(DestinationError)
  })

  test.each([
    'http://public.example/',
    'ftp://public.example/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'https:public.example',
    'https:/public.example',
    '//public.example/',
    'public.example',
    'https://user@public.example/',
    'https://user:secret@public.example/',
    'https://:secret@public.example/',
    'https://@public.example/',
    'https://public.example\\@127.0.0.1/',
    'https://public.example\t/',
    'https://public.example/a\nb',
    ' https://public.example/',
    'https://public.example/ ',
    'https://public.example\u0000/',
    'https://public.example:0/',
    'https://public.example:65536/',
    `https://public.example/${'x'.repeat(2_048)}`,
  ])('refuses %j', async (url) => {
    await expect(check(url)).rejects.toThrow(DestinationError)
  })

  test('never repeats credentials of the URL', async () => {
    const error = await check('https://user:geheim@public.example/').catch((error) => error)
    expect(error.message).not.toContain('geheim')
  })

  test.each([
    ['private.example', 'private'],
    ['mixed.example', '192.168.1.1'],
    ['mixed6.example', 'fd00::1'],
    ['loopback.example', 'loopback'],
    ['mapped.example', 'linkLocal'],
    ['strange.example', 'no address'],
  ])('refuses %s by what it resolves to', async (name, why) => {
    await expect(check(`https://${name}/`)).rejects.toThrow(why)
    await expect(check(`https://${name}./`)).rejects.toThrow(why)
    await expect(check(`https://${name.toUpperCase()}/`)).rejects.toThrow(why)
  })

  test('tells a name that does not resolve from one that is refused', async () => {
    const unresolved = await check('https://unknown.example/').catch((error) => error)
    expect(unresolved).toBeInstanceOf(DestinationError)
    expect(unresolved.isUnresolved).toBe(true)
    const refused = await check('https://private.example/').catch((error) => error)
    expect(refused.isUnresolved).toBe(false)
  })

  test.each([
    ['https://public.example/hook?x=1', 'public.example', NAMES['public.example']],
    ['https://PUBLIC.example./', 'public.example', NAMES['public.example']],
    ['https://bücher.example/', 'xn--bcher-kva.example', ['93.184.215.14']],
    ['https://8.8.8.8:8443/', '8.8.8.8', ['8.8.8.8']],
    ['https://[2606:4700::1111]/', '2606:4700::1111', ['2606:4700::1111']],
    ['https://134744072/', '8.8.8.8', ['8.8.8.8']],
    ['https://172.15.255.255/', '172.15.255.255', ['172.15.255.255']],
    ['https://172.32.0.1/', '172.32.0.1', ['172.32.0.1']],
    ['https://[::ffff:8.8.8.8]/', '::ffff:808:808', ['::ffff:808:808']],
  ])('admits %s', async (url, name, addresses) => {
    expect(await check(url)).toMatchObject({ name, addresses: addresses ?? [] })
  })
})

describe('with --allow-local-webhooks', () => {
  test.each([
    'http://127.0.0.1:9000/hook',
    'https://127.0.0.1/',
    'http://127.1/',
    'http://[::1]:9000/',
    'http://[::ffff:127.0.0.1]/',
    'http://localhost:9000/',
    'http://app.localhost:9000/',
    'https://loopback.example/',
    'https://public.example/',
  ])('admits %s', async (url) => {
    expect((await check(url, true)).addresses.length).toBeGreaterThan(0)
  })

  test.each([
    'http://10.0.0.1/',
    'https://192.168.0.1/',
    'http://169.254.169.254/',
    'http://0.0.0.0/',
    'http://[fd00::1]/',
    'https://private.example/',
    'https://mixed.example/',
    'http://printer.local/',
    // In clear text to this machine only.
    'http://public.example/',
    'http://8.8.8.8/',
    'ftp://localhost/',
    'http://user:pass@localhost/',
  ])('still refuses %s', async (url) => {
    await expect(check(url, true)).rejects.toThrow(DestinationError)
  })
})
