import Synchronization

/// The receipts read before, by digest, so that form and signature of each are checked once.
final class KnownReceipts: Sendable {
    /// Above this many, all entries are dropped; reading a receipt again is cheap enough.
    private static let entriesMax = 1 << 20

    private let codec: ReceiptCodec
    private let known = Mutex<[UInt64: ReceiptIdentity]>([:])

    init(codec: ReceiptCodec) {
        self.codec = codec
    }

    func read(_ text: [UInt8]) -> ReceiptCodec.Reading {
        let digest = Self.digest(text)
        if let identity = known.withLock({ $0[digest] }) { return .genuine(identity) }
        let reading = codec.read(base64: String(decoding: text, as: UTF8.self))
        switch reading {
        case .malformed, .forged: break
        case .genuine(let identity):
            known.withLock { known in
                if known.count >= Self.entriesMax { known.removeAll(keepingCapacity: true) }
                known[digest] = identity
            }
        }
        return reading
    }

    /// Returns a digest, eight bytes at a time. It guards against honest mistakes, not attackers: this store is
    /// simulated.
    private static func digest(_ text: [UInt8]) -> UInt64 {
        text.withUnsafeBytes { bytes in
            var hash = UInt64(bytes.count) &* 0x9E37_79B9_7F4A_7C15
            var position = 0
            while position + 8 <= bytes.count {
                let word = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
                hash = (hash ^ word) &* 0xBF58_476D_1CE4_E5B9
                hash ^= hash >> 29
                position += 8
            }
            for byte in bytes[position...] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            return SeededGenerator.mixed(hash)
        }
    }
}
