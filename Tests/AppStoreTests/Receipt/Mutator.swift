import SeededRandom

/// Damages samples: flips, cuts, splices, repeats, and lies about lengths. The same seed and number give the same
/// input.
struct Mutator {
    let samples: [[UInt8]]
    /// Pieces that mean something where they land.
    let tokens: [[UInt8]]
    let seed: UInt64
    /// No input is longer, whatever is spliced into it.
    static let bytesMax = 64 * 1024

    /// The input with this number.
    func input(_ number: Int) -> [UInt8] {
        var generator = Seeded(seed: seed &+ UInt64(number) &* 0x1_0000_0001)
        var bytes = samples[Int.random(in: 0..<samples.count, using: &generator)]
        for _ in 0..<Int.random(in: 1...4, using: &generator) { damage(&bytes, &generator) }
        return bytes.count > Self.bytesMax ? Array(bytes.prefix(Self.bytesMax)) : bytes
    }

    private func damage(_ bytes: inout [UInt8], _ generator: inout Seeded) {
        guard !bytes.isEmpty else { return }
        let place = Int.random(in: 0..<bytes.count, using: &generator)
        switch Int.random(in: 0..<9, using: &generator) {
        case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        case 1: bytes[place] = UInt8.random(in: 0...255, using: &generator)
        case 2: bytes.removeLast(bytes.count - place)
        case 3: bytes.removeSubrange(stretch(of: bytes, from: place, &generator))
        case 4: bytes.insert(contentsOf: bytes[stretch(of: bytes, from: place, &generator)], at: place)
        case 5:
            let other = samples[Int.random(in: 0..<samples.count, using: &generator)]
            guard !other.isEmpty else { return }
            let start = Int.random(in: 0..<other.count, using: &generator)
            bytes.replaceSubrange(
                stretch(of: bytes, from: place, &generator), with: other[stretch(of: other, from: start, &generator)])
        case 6: bytes.insert(contentsOf: tokens[Int.random(in: 0..<tokens.count, using: &generator)], at: place)
        case 7:
            let token = tokens[Int.random(in: 0..<tokens.count, using: &generator)]
            bytes.replaceSubrange(place..<min(bytes.count, place + token.count), with: token)
        default:
            // A byte a little larger or smaller: most often a length, a digit or a tag.
            bytes[place] = bytes[place] &+ UInt8(bitPattern: Int8.random(in: -4...4, using: &generator))
        }
    }

    private func stretch(of bytes: [UInt8], from start: Int, _ generator: inout Seeded) -> Range<Int> {
        let longest = min(bytes.count - start, 1 << Int.random(in: 0...10, using: &generator))
        return start..<(start + Int.random(in: 0...longest, using: &generator))
    }
}
