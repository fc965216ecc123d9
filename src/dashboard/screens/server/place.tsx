import { useEffect, useState } from 'preact/hooks'
import type { ResponseOf } from '../../../route-client/client.ts'
import { useDashboard } from '../../dashboard.ts'
import type { Server } from '../../store/store.ts'

type Place = ResponseOf<'servers.compute'>

/** Milliseconds between looks at where a server on an engine is, since nothing tells that an engine went away. */
const LOOK_MS = 10_000

/** Follows where a server runs while the component is shown; null before it is known. */
export function usePlace({ id, status }: Server): Place | null {
  const { api } = useDashboard()
  const [place, setPlace] = useState<Place | null>(null)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isOver = false
    const look = async (): Promise<void> => {
      const found = await api.call('servers.compute', { params: { serverId: id } }).catch(() => null)
      if (isOver) return
      if (found !== null) setPlace(found)
      // A server of this machine stays one.
      if (found?.compute !== 'local') timer = setTimeout(look, LOOK_MS)
    }
    void look()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [api, id, status])
  return place
}

/** What a server on an engine is, of which image, and on which node; nothing for one of berth's own machine. */
export function PlaceFact({ place }: { place: Place | null }) {
  if (place === null || place.compute === 'local') return null
  const { compute, image, root, node } = place
  return (
    <span>
      <span class="quiet">{compute === 'docker' ? 'Container of' : 'Pod of'}</span> {image}
      {root && ', commands are root'}
      {node !== null && (
        <>
          {' '}
          <span class="quiet">on</span> {node}
        </>
      )}
    </span>
  )
}

/** Says why a server cannot be reached. */
export function PlaceNotice({ place }: { place: Place | null }) {
  if (place?.state !== 'unreachable') return null
  return (
    <div class="notice failure" role="alert">
      <p>The server cannot be reached. {place.cause}</p>
    </div>
  )
}
