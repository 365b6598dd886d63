import Synchronization

/// A bounded memory of verified chains, by the header that they came in. Apple signs with a few keys at a time, so nearly
/// every text finds its chain here.
final class VerifiedChains: Sendable {
    /// The verification of one chain, for every text that waits for it.
    typealias Verification = Task<Result<SignerChain, SignedTextRefusal>, Never>

    /// The most chains.
    static let chainsMax = 64

    private struct Memory {
        var chains: [[UInt8]: SignerChain] = [:]
        /// The headers, the least recently used first.
        var order: [[UInt8]] = []
        var underWay: [[UInt8]: Verification] = [:]
    }

    private let memory = Mutex(Memory())

    /// Returns the chain of a header that was verified before.
    func chain(of header: ArraySlice<UInt8>) -> SignerChain? {
        let header = Array(header)
        return memory.withLock { memory in
            guard let chain = memory.chains[header] else { return nil }
            if memory.order.last != header, let place = memory.order.firstIndex(of: header) {
                memory.order.remove(at: place)
                memory.order.append(header)
            }
            return chain
        }
    }

    /// Returns the verification of a header's chain that is under way, or begins one; nil where `admits` forbids that.
    func verification(
        of header: ArraySlice<UInt8>, admits: () -> Bool,
        verify: @escaping @Sendable () async -> Result<SignerChain, SignedTextRefusal>
    ) -> Verification? {
        let header = Array(header)
        return memory.withLock { memory in
            // Another text may have brought it since this one looked.
            if let chain = memory.chains[header] { return Verification { .success(chain) } }
            if let verification = memory.underWay[header] { return verification }
            guard admits() else { return nil }
            let verification = Verification { await verify() }
            memory.underWay[header] = verification
            return verification
        }
    }

    /// Ends the wait for a verification: its chain is remembered now, or the next text begins another one.
    func endVerification(of header: ArraySlice<UInt8>) {
        memory.withLock { $0.underWay[Array(header)] = nil }
    }

    /// Remembers a chain; the least recently used one makes room.
    func remember(_ chain: SignerChain, of header: ArraySlice<UInt8>) {
        let header = Array(header)
        memory.withLock { memory in
            if memory.chains.updateValue(chain, forKey: header) != nil { return }
            memory.order.append(header)
            if memory.order.count > Self.chainsMax { memory.chains[memory.order.removeFirst()] = nil }
        }
    }

    /// How many chains it holds.
    var count: Int { memory.withLock(\.chains.count) }
}
