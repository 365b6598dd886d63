/// Returns the result of `body`, or nil when it takes longer than `time`; `body` is then cancelled and awaited.
func within<Result: Sendable>(_ time: Duration, _ body: @escaping @Sendable () async -> Result) async -> Result? {
    await withTaskGroup(of: Result?.self) { race in
        race.addTask { await body() }
        race.addTask {
            // Only a cancellation makes the sleep fail, and then the race is over.
            try? await Task.sleep(for: time)
            return nil
        }
        let first = await race.next() ?? nil
        race.cancelAll()
        return first
    }
}
