import Foundation
import PerennialClient
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Counts what the probe does and kills the process, for real, at a given step.
final class Steps: Sendable {
    private let killAt: Int
    private let count = Mutex(0)

    /// - Parameter killAt: The step, from 1; 0 kills at none.
    init(killAt: Int) { self.killAt = killAt }

    /// How many steps were reached.
    var reached: Int { count.withLock { $0 } }

    /// One more step is reached.
    func reach(_ name: String) {
        let number = count.withLock { count in
            count += 1
            return count
        }
        guard number == killAt else { return }
        FileHandle.standardOutput.write(Data("killed at step \(number), \(name)\n".utf8))
        kill(getpid(), SIGKILL)
    }
}

extension Transport {
    /// The same, with a step before each request and one after each answer.
    func counted(by steps: Steps) -> Transport {
        Transport { request in
            steps.reach("before \(request.url?.lastPathComponent ?? "a request")")
            let answer = try await send(request)
            steps.reach("after \(request.url?.lastPathComponent ?? "a request")")
            return answer
        }
    }
}

extension UploadStorage {
    /// The same, with a step before and after each change.
    func counted(by steps: Steps) -> UploadStorage {
        UploadStorage(
            load: load,
            save: { entry in
                steps.reach("before a save")
                try await save(entry)
                steps.reach("after a save")
            },
            remove: { id in
                steps.reach("before a removal")
                try await remove(id)
                steps.reach("after a removal")
            }, setAside: setAside)
    }
}
