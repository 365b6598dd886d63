import Foundation

/// Runs what blocks on a thread of its own.
///
/// Swift's pool has one thread for each core, and all tests that run at once share these threads.
package func onAThread<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: work()) }
    }
}

extension Process {
    /// Waits for its end; answers its status.
    ///
    /// On a thread other than that of its start, `waitUntilExit()` asks all the time and keeps a core busy.
    package func ended() async -> Int32 {
        await onAThread { [self] in
            while isRunning { usleep(2_000) }
            return terminationStatus
        }
    }
}

extension FileHandle {
    /// Everything until the end, as text.
    package func textToEnd() async -> String {
        String(decoding: await onAThread { [self] in readDataToEndOfFile() }, as: UTF8.self)
    }
}
