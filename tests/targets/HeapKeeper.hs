{-# LANGUAGE BangPatterns #-}
-- A Haskell program that knows what its heap consists of, and who keeps it. Its first line says "ready"; it waits for the line "go",
-- then looks at everything again and prints what it found. With an argument it replaces records all the while instead.
module Main where

import Control.Concurrent
import Control.Exception (evaluate)
import Control.Monad
import Data.IORef
import Data.List (foldl')
import System.Environment
import System.IO
import System.Mem
import Foreign.StablePtr

data Record = Record !Int !Int

data Tree = Leaf | Node !Tree !Int !Record !Tree

data OfThread = OfThread !Int

data OfPointer = OfPointer !Int

insert :: Int -> Record -> Tree -> Tree
insert k r Leaf = Node Leaf k r Leaf
insert k r (Node a j s b)
  | k < j = Node (insert k r a) j s b
  | k > j = Node a j s (insert k r b)
  | otherwise = Node a j r b

size :: Tree -> Int
size Leaf = 0
size (Node a _ _ b) = size a + 1 + size b

-- 1 to 16383, in an order in which the tree is as flat as can be.
keys :: [Int]
keys = [ (2 * j + 1) * 2 ^ (13 - d) | d <- [0 .. 13 :: Int], j <- [0 .. 2 ^ d - 1] ]

table :: Tree
table = foldl' (\t k -> insert k (Record k 1) t) Leaf keys
{-# NOINLINE table #-}

slow :: Int -> Int
slow n = sum [1 .. n]
{-# NOINLINE slow #-}

putOff :: Int -> [Int]
putOff n = [ slow (1000 + i) | i <- [1 .. n] ]
{-# NOINLINE putOff #-}

serve :: Int -> MVar () -> MVar Int -> IO ()
serve n go back = do
  box <- newIORef $! OfThread n
  takeMVar go
  OfThread k <- readIORef box
  putMVar back k
{-# NOINLINE serve #-}

spin :: Tree -> IO ()
spin first = do
  ref <- newIORef first
  forM_ keys $ \k -> modifyIORef' ref (insert k (Record k k))
  putStrLn "ready"
  forM_ (cycle keys) $ \k -> do
    modifyIORef' ref (insert k (Record k k))
    t <- readIORef ref
    when (k == 1 && size t /= 16383) $ putStrLn "wrong"

-- Other lines only wake it up.
waitForGo :: IO ()
waitForGo = do
  line <- getLine
  unless (line == "go") waitForGo

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  args <- getArgs
  let n = length args
  _ <- evaluate (size table)
  unless (null args) $ spin table
  let later = putOff 5000
  _ <- evaluate (length later)
  pointer <- newStablePtr $! OfPointer (4711 + n)
  go <- newEmptyMVar
  back <- newEmptyMVar
  _ <- forkIO (serve (99 + n) go back)
  yield
  performMajorGC
  putStrLn "ready"
  waitForGo
  putMVar go ()
  k <- takeMVar back
  OfPointer p <- deRefStablePtr pointer
  print (size table, sum later, k, p)
