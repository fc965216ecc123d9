import type { ComponentType } from 'preact'
import { percentDecoded } from '../../runtime/decode.ts'

/** The parameters of a path, decoded, by name. */
export type Params = Readonly<Record<string, string>>

/** What a screen is given. */
export interface ScreenProps {
  readonly params: Params
}

/** A path of the page, with the screen that it shows. */
export interface Route {
  /** With parameters: `/dashboard/servers/:serverId`. */
  readonly path: string
  /** The title of the window until the screen sets its own. */
  readonly title: string
  /** Whether only the instance's owner may see it. */
  readonly isAdmin?: boolean
  /** Loads the screen's code. */
  readonly load: () => Promise<{ default: ComponentType<ScreenProps> }>
}

/** A route that a path matches. */
export interface RouteMatch {
  readonly route: Route
  readonly params: Params
}

/** Finds the route of a path: the first that fits, segment by segment. */
export function matchRoute(routes: readonly Route[], path: string): RouteMatch | null {
  const given = segmentsOf(path)
  for (const route of routes) {
    const segments = segmentsOf(route.path)
    if (segments.length !== given.length) continue
    const params: Record<string, string> = {}
    const fits = segments.every((segment, index) => {
      const value = given[index] ?? ''
      if (!segment.startsWith(':')) return segment === value
      params[segment.slice(1)] = percentDecoded(value) ?? value
      return value !== ''
    })
    if (fits) return { route, params }
  }
  return null
}

const segmentsOf = (path: string): string[] => path.replace(/\/+$/, '').split('/')
