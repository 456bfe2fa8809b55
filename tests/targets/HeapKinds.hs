-- A Haskell program that has objects of most kinds and says, by ghc-heap, where each is, what it is and how many bytes it has. For each
-- line N it then makes N further records, collects garbage, and says how many it has and what its run-time system counts (zeros without
-- +RTS -T): bytes alive, of those in large objects and in compact regions, and collections.
module Main where

import Control.Concurrent.MVar
import Control.Exception (evaluate)
import Control.Monad
import Data.Array
import Data.IORef
import Data.Word
import Foreign.ForeignPtr
import GHC.Compact
import GHC.Conc
import GHC.Exts.Heap
import GHC.Exts.Heap.Closures (closureSize)
import GHC.Stats
import System.IO
import System.Mem
import System.Mem.Weak

data Record = Record !Int Int !Double

data Small = Small

data Pair = Pair Int [Int]

newtype Keeps = Keeps (Int -> Int -> Int)

slow :: Int -> Int
slow n = sum [1 .. n]
{-# NOINLINE slow #-}

add3 :: Int -> Int -> Int -> Int
add3 a b c = a * b + c
{-# NOINLINE add3 #-}

describe :: (String, Box) -> IO ()
describe (label, box) = do
  closure <- getBoxedClosureData box
  let name = case closure of
        ConstrClosure {pkg = p, modl = m, name = n} -> p ++ ":" ++ m ++ "." ++ n
        UnsupportedClosure i -> show (tipe i)
        c -> show (tipe (info c))
  putStrLn (unwords [label, takeWhile (/= '/') (show box), show (8 * closureSize box), name])

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  n <- length . show <$> getNumCapabilities
  let record = Record n (n + 1) 3
      pair = Pair n [n .. n + 300]
      later = slow (1000 + n)
      partial = add3 n 2
      array = listArray (0, 99) (map Just [n ..]) :: Array Int (Maybe Int)
      large = listArray (0, 19999) (map Just [n ..]) :: Array Int (Maybe Int)
      huge = 7 ^ (5000 + n) :: Integer
  _ <- evaluate record
  _ <- evaluate (let Pair _ xs = pair in sum xs)
  _ <- evaluate partial
  mapM_ evaluate (elems array)
  mapM_ evaluate (elems large)
  _ <- evaluate huge
  var <- newIORef pair
  box <- newMVar record
  tvar <- newTVarIO record
  pinned <- mallocForeignPtrBytes 2000 :: IO (ForeignPtr Word8)
  pinnedLarge <- mallocForeignPtrBytes 50000 :: IO (ForeignPtr Word8)
  region <- compact [(k, show k) | k <- [n .. n + 2000]]
  weak <- mkWeakPtr pair Nothing
  kept <- newIORef ([] :: [Record])
  performMajorGC
  mapM_ describe
    [ ("record", asBox record), ("pair", asBox pair), ("thunk", asBox later), ("pap", asBox partial), ("array", asBox array),
      ("large", asBox large), ("integer", asBox huge), ("ioref", asBox var), ("mvar", asBox box), ("tvar", asBox tvar),
      ("pinned", asBox pinned), ("region", asBox region), ("weak", asBox weak) ]
  counted <- getRTSStatsEnabled
  let say = do
        have <- length <$> readIORef kept
        s <- if counted
          then do
            x <- getRTSStats
            return [toInteger (gcdetails_live_bytes (gc x)), toInteger (gcdetails_large_objects_bytes (gc x)),
                    toInteger (gcdetails_compact_bytes (gc x)), toInteger (gcs x)]
          else return [0, 0, 0, 0]
        putStrLn (unwords ("have" : show have : map show s))
      serve = do
        end <- isEOF
        unless end $ do
          more <- readLn
          xs <- readIORef kept
          let ys = foldr (\k rest -> Record k (k + 1) 0 : rest) xs [1 .. more]
          _ <- evaluate (length [() | Record _ a _ <- ys, a > 0])
          writeIORef kept ys
          performMajorGC
          say
          serve
  say
  serve
  withForeignPtr pinned return >>= print
  withForeignPtr pinnedLarge return >>= print
  Pair a b <- readIORef var
  Record _ c _ <- readMVar box
  Record _ d _ <- readTVarIO tvar
  back <- deRefWeak weak
  print (later, partial 3, a + sum b + c + d, array ! 7, large ! 9, huge `mod` 1000, length (getCompact region), maybe 0 (\(Pair e _) -> e) back)
