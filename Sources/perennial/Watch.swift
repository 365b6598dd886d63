import Foundation

/// Looks again and again, and shows what a look found or why it failed. SIGINT and SIGTERM end the process at once with
/// status 0, also in the middle of a look: a look only reads, and one that waits for the database may wait long. It does
/// not return.
func keepLooking<Found>(
    everySeconds seconds: Int, isTable: Bool, _ look: () async throws -> Found, show: (Found) -> Void
) async {
    for number in [SIGINT, SIGTERM] { signal(number) { _ in _exit(EXIT_SUCCESS) } }
    while true {
        do {
            let found = try await look()
            if isTable { Terminal.clear() }
            show(found)
        } catch {
            let sentence = ExitStatus.sentence(for: error)
            if isTable {
                Terminal.clear()
                printLine(sentence)
            } else {
                printExactly(sentence)
            }
        }
        await pause(seconds: seconds)
    }
}
