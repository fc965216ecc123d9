import type { ServerWish } from '../../compute/compute.ts'
import type { ComputeConfig, ComputeName } from '../../config/compute.ts'
import { badRequest } from '../../errors.ts'
import type { TierName } from '../accounts/tiers.ts'
import type { ServerSystem } from './model.ts'

/** What the person who starts berth permits and chooses. */
interface ServerImagesDependencies
  extends Pick<ComputeConfig, 'serverImage' | 'serverImages' | 'serverImagesByTier' | 'allowRoot'> {
  /** What runs servers. */
  compute: ComputeName
}

/** Decides with which system a server is made, where servers have one of their own. */
export class ImageChoice {
  readonly #permitted: ServerImagesDependencies

  constructor(permitted: ServerImagesDependencies) {
    this.#permitted = permitted
  }

  /** What runs servers. */
  get compute(): ComputeName {
    return this.#permitted.compute
  }

  /** Returns what a server of a tier is made with if its caller chooses nothing. */
  byDefault(tier: TierName): ServerWish {
    return { image: this.#permitted.serverImagesByTier[tier] ?? this.#permitted.serverImage, root: false }
  }

  /**
   * Returns what a server of a tier is made with.
   *
   * @throws BerthError 400 for what is not permitted
   */
  choose(tier: TierName, { image, root = 'false' }: ServerSystem): ServerWish {
    const { compute, allowRoot } = this.#permitted
    const isRoot = root === 'true'
    if (compute === 'local' && (image !== undefined || isRoot)) {
      const field = image === undefined ? 'root' : 'image'
      throw badRequest(
        `"${field}": servers here see the system of this machine and have no image. Leave it out, or start berth with --compute docker or kubernetes.`,
      )
    }
    if (image !== undefined && !this.#permits(image)) {
      const known = [...this.#configured(), ...this.#permitted.serverImages]
      throw badRequest(
        `"image": ${JSON.stringify(image)} is not among the images that callers may choose${known.length === 0 ? '' : ` (${known.join(', ')})`}. Choose one of them, or start berth with --server-images ${image}.`,
      )
    }
    if (isRoot && !allowRoot) {
      throw badRequest(
        '"root": commands may not be root of their server here. Leave it out, or start berth with --allow-root.',
      )
    }
    return { image: image ?? this.byDefault(tier).image, root: isRoot }
  }

  #configured(): string[] {
    const { serverImage, serverImagesByTier } = this.#permitted
    return [...(serverImage === null ? [] : [serverImage]), ...Object.values(serverImagesByTier)]
  }

  #permits(image: string): boolean {
    return (
      this.#configured().includes(image) ||
      this.#permitted.serverImages.some((pattern) => matches(pattern, image))
    )
  }
}

/** Reports whether a text is a pattern's, in which `*` stands for any characters. */
function matches(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return text === pattern
  if (!text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return at <= text.length - last.length
}
