/** Writes docs/dashboard.png, the picture of the README: the timeline of an instance that is in use. Needs Chromium. */
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { fillWithExample } from './picture/example.ts'
import { withPalette } from './picture/palette.ts'

const root = join(import.meta.dir, '..')
const file = join(root, 'docs/dashboard.png')

/** The fields of berth's ready line that are needed here. */
interface Ready {
  base_url: string
  api_key: string
  admin_token: string
  sign_in_url: string
}

const berth = Bun.spawn(
  [
    process.execPath,
    ...['src/main.ts', 'serve', '--ephemeral', '--json', '--port', '0', '--project-ports', '21000-21099'],
    '--allow-local-webhooks',
  ],
  { cwd: root, stdout: 'pipe', stderr: 'ignore' },
)
try {
  const ready = await readyLine(berth.stdout)
  await fillWithExample({ baseUrl: ready.base_url, apiKey: ready.api_key, adminToken: ready.admin_token })
  await photograph(ready)
  console.error(`Wrote docs/dashboard.png: ${Math.round(Bun.file(file).size / 1_000)} kB.`)
} finally {
  berth.kill('SIGTERM')
  await berth.exited
}

/** Returns the first line that berth prints, parsed. */
async function readyLine(output: ReadableStream<Uint8Array>): Promise<Ready> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of output) {
    text += decoder.decode(chunk, { stream: true })
    const end = text.indexOf('\n')
    if (end !== -1) return JSON.parse(text.slice(0, end))
  }
  throw new Error('berth ended before it was ready; run "bun src/main.ts serve" to see why.')
}

/** Takes the picture, in a window as wide as the README's readers see it. */
async function photograph({ base_url: baseUrl, sign_in_url: signIn }: Ready): Promise<void> {
  const executablePath = Bun.which('chromium') ?? Bun.which('google-chrome')
  if (executablePath === null) throw new Error('No Chromium is installed (apt-get install chromium).')
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' })
    await page.goto(signIn)
    await page.goto(`${baseUrl}/`)
    await page.locator('.connection.live').first().waitFor()
    await page.locator('.timeline .entry').first().waitFor()
    await Bun.write(file, await withPalette(await browser.newPage(), await page.screenshot()))
  } finally {
    await browser.close()
  }
}
