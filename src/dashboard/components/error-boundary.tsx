import { Component, type ComponentChildren } from 'preact'
import { Failure } from './loaded.tsx'

/** Properties of an `ErrorBoundary`. */
interface ErrorBoundaryProps {
  /** What it contains, as the message names it: "This screen". */
  readonly name: string
  readonly children: ComponentChildren
}

/** Shows what it contains or, if drawing that fails, the error in its place: all around it stays usable. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { error: Error | null }> {
  override state = { error: null as Error | null }

  override componentDidCatch(error: unknown): void {
    console.error(error)
    this.setState({ error: error instanceof Error ? error : new Error(String(error)) })
  }

  render({ name, children }: ErrorBoundaryProps) {
    const { error } = this.state
    if (error === null) return children
    const failure = new Error(`${name} could not be drawn: ${error.message}`)
    // What it draws may be kept in memory.
    return <Failure error={failure} retry={() => location.reload()} />
  }
}
