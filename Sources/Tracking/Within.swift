/// What `body` answers, or nil when that takes longer; then it is cancelled, and waited for.
func within<Result: Sendable>(_ time: Duration, _ body: @escaping @Sendable () async -> Result) async -> Result? {
    await withTaskGroup(of: Result?.self) { race in
        race.addTask { await body() }
        race.addTask {
            // Being cancelled is the only way to fail, and then the race is over.
            try? await Task.sleep(for: time)
            return nil
        }
        let first = await race.next() ?? nil
        race.cancelAll()
        return first
    }
}
