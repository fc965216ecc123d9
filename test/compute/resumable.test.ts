import { describe, expect, test } from 'bun:test'
import { ListeningServer } from './listening-server.ts'

describe('a stream that outlives its carriers', () => {
  test('loses no byte of 54 MB of output in 20 cuts', async () => {
    await using server = await ListeningServer.start()
    const block = 'head -c 1000000 /dev/zero | tr "\\0" x; echo $n'
    const hash = new Bun.CryptoHasher('sha256')
    let bytes = 0
    let cuts = 0
    const { exit } = server.client.exec({
      command: `n=0; while [ $n -lt 54 ]; do n=$((n+1)); ${block}; done`,
      timeoutMs: 60_000,
      onOutput: (_, data) => {
        hash.update(data)
        bytes += data.length
        if (bytes < (cuts + 1) * 2_500_000 || cuts === 20) return
        cuts += 1
        server.carriers.at(-1)?.kill('SIGKILL')
      },
    })
    expect(await exit).toMatchObject({ exitCode: 0 })
    const expected = new Bun.CryptoHasher('sha256')
    for (let n = 1; n <= 54; n++) expected.update(Buffer.alloc(1_000_000, 'x')).update(`${n}\n`)
    expect(hash.digest('hex')).toBe(expected.digest('hex'))
    expect(cuts).toBe(20)
    expect(server.carriers.length).toBeGreaterThan(15)
  }, 60_000)
})
