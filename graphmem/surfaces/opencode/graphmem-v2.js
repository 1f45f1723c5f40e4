// graphmem in OpenCode, for its loader of plug-ins with `setup` (version 2).

import { bridge } from "../graphmem/bridge.js"

export default {
  id: "graphmem",
  async setup(context) {
    if (!context.session?.hook) return // OpenCode 1 looks at this file too, and calls the other one
    const memory = bridge({ folder: context.location?.directory ?? "" })
    const beside = new Map() // by session: what the last prompt called to mind
    const ending = new AbortController()

    // A failure of ours is none of OpenCode's.
    const safe = (hook) => async (event) => {
      try {
        await hook(event)
      } catch {}
    }

    await context.session.hook(
      "prompt",
      safe(async ({ sessionID, messageID, prompt }) => {
        const message = { id: messageID, role: "user", time: { created: Date.now() } }
        const part = { id: `${messageID}.0`, messageID, type: "text", text: prompt.text ?? "" }
        beside.set(sessionID, await memory.prompt(sessionID, message, [part]))
      }),
    )
    const tellSystem = safe(({ sessionID, system }) => {
      for (const text of [memory.system(sessionID), beside.get(sessionID)]) if (text) system.push({ type: "text", text })
    })
    await context.session.hook("context", tellSystem)
    try {
      await context.session.hook(
        "compaction",
        safe(async ({ sessionID, system }) => {
          const text = await memory.compacting(sessionID)
          if (text) system.push({ type: "text", text })
        }),
      )
    } catch {} // there before and behind some versions

    await context.tool.hook(
      "execute.before",
      safe(({ sessionID, tool, id, input }) => {
        memory.toolBefore(sessionID, id, tool, input)
      }),
    )
    await context.tool.hook(
      "execute.after",
      safe(async (event) => {
        const { sessionID, messageID, tool, id, input, status, error, result } = event
        const failed = status === "error"
        const output = failed ? textOf(error) : textOf(result?.content)
        const state = { status: failed ? "error" : "completed", input, error: output, output }
        memory.said(sessionID, messageID, { id, messageID, type: "tool", tool, callID: id, state })
        if (failed) memory.failed(sessionID, id, tool, input, output || "failed")
        const text = await memory.toolAfter(sessionID, id)
        if (text && typeof result?.content === "string") result.content += `\n\n${text}`
        else if (text && Array.isArray(result?.content)) result.content.push({ type: "text", text })
      }),
    )

    const hear = safe(async ({ type, data, properties }) => {
      const told = data ?? properties ?? {}
      const id = told.sessionID
      if (type === "session.text.ended") {
        const message = told.assistantMessageID
        const part = { id: `${message}.${told.ordinal}`, messageID: message, type: "text", text: told.text }
        memory.said(id, message, part)
      } else if (type === "session.deleted") await memory.deleted(id)
      else if (type === "session.execution.succeeded" || type === "session.idle") memory.idle(id)
      else if (type === "session.compaction.ended" || type === "session.compacted") memory.compacted(id)
    })
    // Not awaited, it lasts as long as OpenCode does.
    safe(async () => {
      for await (const event of context.event.subscribe({ signal: ending.signal })) await hear(event)
    })()

    return async () => {
      ending.abort()
      await safe(() => memory.dispose())()
    }
  },
}

function textOf(value) {
  if (typeof value === "string") return value
  if (Array.isArray(value)) return value.map((each) => textOf(each?.text ?? "")).join("\n")
  return typeof value?.message === "string" ? value.message : ""
}
