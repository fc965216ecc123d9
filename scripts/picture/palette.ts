import { crc32, deflateSync } from 'node:zlib'
import type { Page } from 'playwright-core'

/** Colours that an indexed PNG has at most. */
const COLOURS = 256

/** Decodes a PNG in the browser, and gives its width, and its pixels as RGBA in base64. */
const DECODE = `async (url) => {
  const image = new Image()
  image.src = url
  await image.decode()
  const { width, height } = image
  const context = new OffscreenCanvas(width, height).getContext('2d')
  context.drawImage(image, 0, 0)
  const reader = new FileReader()
  const isRead = new Promise((resolve) => reader.addEventListener('load', resolve))
  reader.readAsDataURL(new Blob([context.getImageData(0, 0, width, height).data]))
  await isRead
  return { width, pixels: reader.result.split(',')[1] }
}`

/**
 * Returns a screenshot with its most frequent colours alone, each other replaced by the nearest: a third of its size, and
 * no difference that is seen, as the others are shades at the edges of letters.
 *
 * @param page any page, which decodes it
 */
export async function withPalette(page: Page, png: Buffer): Promise<Buffer> {
  const url = `data:image/png;base64,${png.toString('base64')}`
  const decoded = await page.evaluate<{ width: number; pixels: string }>(`(${DECODE})('${url}')`)
  const rgba = Buffer.from(decoded.pixels, 'base64')
  const colours = Array.from({ length: rgba.length / 4 }, (_, at) => rgba.readUIntBE(at * 4, 3))
  const counts = new Map<number, number>()
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const byCount = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour)
  const palette = byCount.slice(0, COLOURS)
  const indices = new Map(byCount.map((colour) => [colour, nearest(palette, colour)]))
  return encode(
    decoded.width,
    palette,
    colours.map((colour) => indices.get(colour) ?? 0),
  )
}

/** Returns the index of the colour of a palette that is nearest to one. */
function nearest(palette: readonly number[], colour: number): number {
  const distances = palette.map((one) =>
    [16, 8, 0].reduce((sum, bits) => sum + (((one >> bits) & 255) - ((colour >> bits) & 255)) ** 2, 0),
  )
  return distances.indexOf(Math.min(...distances))
}

/** Encodes pixels, given as indices of a palette, as PNG (ISO/IEC 15948). */
function encode(width: number, palette: readonly number[], pixels: readonly number[]): Buffer {
  const height = pixels.length / width
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  // 8 bits, indexed colours; the rest is the only choice there is.
  header.set([8, 3, 0, 0, 0], 8)
  const colours = Buffer.alloc(palette.length * 3)
  palette.forEach((colour, at) => {
    colours.writeUIntBE(colour, at * 3, 3)
  })
  // Each row begins with its filter: none.
  const rows = Buffer.alloc(height * (width + 1))
  for (let row = 0; row < height; row++)
    rows.set(pixels.slice(row * width, (row + 1) * width), row * (width + 1) + 1)
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header),
    chunk('PLTE', colours),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type), data])
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  checksum.writeUInt32BE(crc32(typed))
  return Buffer.concat([length, typed, checksum])
}
