import AppStoreSimulator
import Foundation
import Postgres
import Subscriptions
import TestSupport
import Tracking

/// A population with accelerated lives, a server of its own that can be stopped, and workers as processes.
struct StormWorld {
    let world: PretendWorld
    let cluster: PrivateCluster
    let leaseSeconds: Int
    let speedup: Int

    /// Runs `body` in a storm's world, then takes everything down.
    static func with(
        seed: UInt64, customers: Int, monthSeconds: Double, leaseSeconds: Int,
        _ body: (StormWorld) async throws -> Void
    ) async throws {
        let cluster = try await PrivateCluster()
        try await cluster.start()
        var options = SimulatorOptions(seed: seed)
        options.customers = customers
        options.sandboxCustomers = customers / 20
        options.arrivalsPerMonth = Double(customers) / 50
        options.monthSeconds = monthSeconds
        do {
            try await PretendWorld.with(
                options, leaseSeconds: Double(leaseSeconds), connectionString: cluster.connectionString
            ) { world in
                // Two cores that do everything at once may fall behind; that must not end access here.
                try await world.run("UPDATE ledger.app SET outage_allowance_ms = outage_allowance_ms * 100")
                try await body(
                    StormWorld(
                        world: world, cluster: cluster, leaseSeconds: leaseSeconds,
                        speedup: Int(30 * 86400 / monthSeconds)))
            }
        } catch {
            try await cluster.stop(immediate: true)
            throw error
        }
        try await cluster.stop(immediate: true)
        try await cluster.remove()
    }

    /// Kills workers at random and starts others until its task is cancelled; two run at a time.
    func keepKilling(every seconds: Double, using random: inout some RandomNumberGenerator) async throws -> Int {
        var workers = try [startWorker(), startWorker()]
        defer { for worker in workers { worker.kill() } }
        var kills = 0
        while !Task.isCancelled {
            try? await Task.sleep(for: .seconds(seconds * Double.random(in: 0.5...1.5, using: &random)))
            let victim = Int.random(in: 0..<workers.count, using: &random)
            workers[victim].kill()
            workers[victim] = try startWorker()
            kills += 1
        }
        return kills
    }

    /// Sends what devices send, as the app's server would, until its task is cancelled. Waits through an outage of the
    /// database.
    func keepUploading(seed: UInt64) async -> Int {
        var held = HeldReceipts(world.simulator, seed: seed)
        var (last, sent) = (Int64.min, 0)
        while !Task.isCancelled {
            let uploads = world.simulator.uploads(since: last)
            let submissions = held.next(uploads)
            if await upload(submissions) {
                last = uploads.last?.at ?? last
                sent += submissions.count
            }
            try? await Task.sleep(for: .milliseconds(300))
        }
        return sent
    }

    /// Sends everything that devices ever sent, as they do again after an outage.
    func uploadAgain() async {
        _ = await upload(world.simulator.uploads().map(Submission.init))
    }

    private func upload(_ submissions: [Submission]) async -> Bool {
        do {
            for result in try await world.tracker.store(submissions) {
                do {
                    _ = try result.get()
                } catch is UploadRefusal {
                    // A receipt of another app.
                }
            }
            return true
        } catch {
            print("upload: \(error)")
            return false
        }
    }

    private func startWorker() throws -> Process {
        try world.startWorkerProcess(leaseSeconds: leaseSeconds, speedup: speedup)
    }
}

extension Process {
    /// SIGKILL: nothing is tidied up.
    fileprivate func kill() {
        Foundation.kill(processIdentifier, SIGKILL)
        waitUntilExit()
    }
}
