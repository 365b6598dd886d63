/// Which call meets which fault: decided by the seed and the call's number.
struct FaultPlan: Sendable {
    let seed: UInt64
    private(set) var faults: [Fault] = []
    private(set) var calls: UInt64 = 0

    init(seed: UInt64) {
        self.seed = seed
    }

    mutating func add(_ fault: Fault) { faults.append(fault) }

    mutating func clear() { faults = [] }

    /// The fault of the next call. Shares add up, in the order the faults were given.
    mutating func next(at now: Moment) -> Fault? {
        calls += 1
        guard !faults.isEmpty else { return nil }
        faults.removeAll { fault in fault.untilMilliseconds.map { $0 <= now.milliseconds } ?? false }
        var numbers = SeededGenerator(seed: seed ^ 0xFA17, stream: calls)
        var draw = numbers.unit()
        for fault in faults {
            guard draw >= fault.share else { return fault }
            draw -= fault.share
        }
        return nil
    }
}

extension Fault {
    /// What the fault makes of the answer.
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
        case .http:
            let code = code ?? 503
            reply.code = (400...599).contains(code) ? code : 503
            reply.body = Array("An Internal Server Error Has Occurred.".utf8)
        case .hang:
            reply.delivery = .never
            reply.delaySeconds = max(0, seconds ?? 60)
        case .truncate: reply.delivery = .cut(bytes: reply.body.count / 2)
        case .html:
            reply.body = Array("<html><head><title>Http/1.1 Service Unavailable</title></head></html>".utf8)
        case .slow: reply.delaySeconds = max(0, seconds ?? 5)
        }
        return reply
    }
}
