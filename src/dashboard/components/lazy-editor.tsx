import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { EditorProps } from './editor.tsx'
import { Loading } from './page.tsx'

/** An editor, whose code is loaded when one is first shown. */
export function LazyEditor(props: EditorProps) {
  const [Editor, setEditor] = useState<ComponentType<EditorProps> | null>(null)
  useEffect(() => {
    void import('./editor.tsx').then((module) => setEditor(() => module.Editor))
  }, [])
  return Editor ? <Editor {...props} /> : <Loading />
}
