import Synchronization

/// The faults of the calls, decided by the seed and the number of the call.
final class Troubles: Sendable {
    private let seed: UInt64
    private let plan: Mutex<[Fault]>
    private let hasNone: Atomic<Bool>
    private let callCount = Atomic<Int>(0)

    init(seed: UInt64, faults: [Fault]) {
        self.seed = seed
        plan = Mutex(faults)
        hasNone = Atomic(faults.isEmpty)
    }

    var faults: [Fault] { plan.withLock { $0 } }

    /// Whether there are no faults at present.
    var isQuiet: Bool { hasNone.load(ordering: .relaxed) }

    /// The number of calls so far.
    var calls: Int { callCount.load(ordering: .relaxed) }

    func add(_ fault: Fault) { change { $0.append(fault) } }

    func clear() { change { $0 = [] } }

    /// Returns the number of the next call, from 1.
    func nextCall() -> UInt64 { UInt64(callCount.wrappingAdd(1, ordering: .relaxed).newValue) }

    /// Returns the fault of a call. Shares add up, in the order in which the faults were added.
    func fault(ofCall call: UInt64, at now: StoreTime) -> Fault? {
        guard !isQuiet else { return nil }
        change { faults in
            faults.removeAll { fault in fault.untilMilliseconds.map { $0 <= now.milliseconds } ?? false }
        }
        var numbers = SeededGenerator(seed: seed ^ 0xFA17, stream: call)
        var draw = numbers.unit()
        for fault in faults {
            guard draw >= fault.share else { return fault }
            draw -= fault.share
        }
        return nil
    }

    private func change(_ body: (inout [Fault]) -> Void) {
        plan.withLock { faults in
            body(&faults)
            hasNone.store(faults.isEmpty, ordering: .relaxed)
        }
    }
}

extension Fault {
    /// Returns the reply with the fault applied.
    func applied(to reply: SimulatorReply) -> SimulatorReply {
        var reply = reply
        switch kind {
        case .status:
            let status = Int64(status ?? 21005)
            var json = JSONWriter(reserving: 64)
            json.object { json in
                json.number("status", status)
                if (21100...21199).contains(status), let isRetryable { json.boolean("is-retryable", isRetryable) }
            }
            reply.body = json.bytes
        case .http: error(&reply)
        case .hang:
            reply.delivery = .never
            reply.delaySeconds += max(0, seconds ?? 60)
        case .truncate: reply.delivery = .cut(bytes: reply.body.count / 2)
        case .html: reply.body = Self.page
        case .slow: reply.delaySeconds += max(0, seconds ?? 5)
        case .drip: reply.delivery = .dripping(seconds: max(0, seconds ?? 5))
        case .forged, .foreign: break
        }
        return reply
    }

    private static let page = Array("<html><head><title>Http/1.1 Service Unavailable</title></head></html>".utf8)

    private func error(_ reply: inout SimulatorReply) {
        let code = code ?? 503
        reply.code = (400...599).contains(code) ? code : 503
        reply.body = reply.code == 500 ? Array("An Internal Server Error Has Occurred.".utf8) : Self.page
        guard reply.code == 429 else { return }
        reply.headers.append(("Retry-After", String(Int((seconds ?? 1).rounded(.up)))))
    }
}
