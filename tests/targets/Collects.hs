-- A Haskell program that collects garbage when it is asked to: for each line N as many collections, of the whole heap. It answers with what its run-time
-- system counts: collections, those of the whole heap, nanoseconds in them, bytes alive after the last (0 0 0 0 without +RTS -T).
module Main where

import Control.Monad
import Data.IORef
import GHC.Stats
import System.IO
import System.Mem

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  kept <- newIORef ([] :: [[Int]])
  counted <- getRTSStatsEnabled
  let say = if counted
        then do
          s <- getRTSStats
          putStrLn (unwords (map show [toInteger (gcs s), toInteger (major_gcs s), toInteger (gc_elapsed_ns s),
                                       toInteger (gcdetails_live_bytes (gc s))]))
        else putStrLn "0 0 0 0"
      serve = do
        end <- isEOF
        unless end $ do
          n <- readLn :: IO Int
          forM_ [1 .. n] $ \k -> do
            modifyIORef' kept ([k .. k + 20000] :)
            xs <- readIORef kept
            sum (map sum (take 1 xs)) `seq` performMajorGC
          say
          serve
  say
  serve
  readIORef kept >>= print . length
